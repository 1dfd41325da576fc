// Package corpus generates catalogs with one defect each: valid ones with a mutation of every rule
// for catalogs, and with random mutations of their structure and text. The generated catalogs are
// always the same.
//
// Tests compare the verdicts of our programs with those of the usual programs.
package corpus
