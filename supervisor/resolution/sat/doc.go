// Package sat finds the best solution of a small logical problem. It selects variables so that mandatory ones
// are taken, taken ones have their dependencies, and no taken ones exclude each other. If there is no solution,
// it reports which constraints together leave none.
//
// It is independent of operators. The search is that of a SAT solver (github.com/go-air/gini). Solve defines
// which solution is best.
package sat
