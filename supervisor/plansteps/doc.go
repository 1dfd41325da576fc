// Package plansteps converts a resolved bundle to the steps of an InstallPlan.
//
// It is pure. The same bundle has the same steps and the same plan name, on every replica and after every
// restart. A plan that was only partly written is thus found again, instead of being created a second time. The
// controllers that create plans (subscription) and execute them (installplan) share this package and the API
// objects, never each other's code.
package plansteps
