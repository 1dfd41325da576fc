// Package transitions tests that a Subscription tells every stage that its InstallPlans
// go through, in order, whoever moves the plans, how quickly, and whatever happens to
// the supervisors meanwhile: it watches everything on a real API server, and holds what
// Subscriptions showed and wrote down against what the plans really were. It holds
// nothing else, so that the other tests need no control plane.
package transitions
