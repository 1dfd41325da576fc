// Package soak lets two registries serve for a while as their users know them:
// clients ask without a pause and retry as gRPC's service config says, the content
// is exchanged again and again, and the programs are restarted in turn. No call may
// fail, no answer may be a mixture, and in the end nothing may be left over.
//
// The length is SOAK, a duration; 20 s without it, and some minutes for `make soak`.
package soak
