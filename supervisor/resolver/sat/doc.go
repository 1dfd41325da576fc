// Package sat finds the best solution of a small logical problem: which of a
// number of things to take, so that everything that must be there is, everything
// that is taken has what it needs, and nothing is taken that excludes something
// else. Where there is no solution it says which constraints together leave none.
//
// It knows nothing of operators. The search is that of a SAT solver
// (github.com/go-air/gini); what is best is defined by Solve.
package sat
