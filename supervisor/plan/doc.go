// Package plan turns a resolved bundle into the steps of an InstallPlan.
//
// It is pure: the same bundle gives the same steps and the same plan name, on
// every replica and after every restart, so that a plan which was half written
// is found again instead of being made a second time. The controllers that
// create plans (subscription) and execute them (installplan) meet here and in
// the API objects, never in each other's code.
package plan
