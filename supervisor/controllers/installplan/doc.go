// Package installplan executes approved InstallPlans: it applies their steps in
// order, records what became of each, and ends in Complete or Failed.
//
// Plans are made by the subscription controller through package plan; this
// controller decides nothing about what is installed. Every step may be applied
// any number of times with the same outcome, so a pass that was cut off is
// simply run again, by this process or by the one that leads after it.
package installplan
