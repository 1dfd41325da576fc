// Package owners changes Subscriptions and InstallPlans in random order while two
// supervisors fight for the lead, and checks whom every plan belongs to and who has to
// approve it. It holds nothing else, so that the other tests need no control plane.
package owners
