// Package explain makes broken situations for real, in a control plane with a supervisor,
// and asks "supervisor explain" what is wrong: the first line has to name the true cause.
package explain
