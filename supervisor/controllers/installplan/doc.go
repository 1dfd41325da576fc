// Package installplan executes approved InstallPlans: it applies their steps in order, records the
// status of each step, and ends a plan in Complete or Failed.
//
// The subscription controller creates plans through package plan; this controller does not decide
// what is installed. Steps are idempotent. After an interruption, this process or the next leader
// runs the pass again.
package installplan
