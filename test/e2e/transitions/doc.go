// Package transitions tests that a Subscription shows every stage of its InstallPlans in order. It
// must do so whatever changes the InstallPlans, however fast, and whatever happens to the
// supervisors. The test watches everything on a real API server and compares what Subscriptions
// showed and recorded with the actual stages. It is a package of its own because other tests need
// no control plane.
package transitions
