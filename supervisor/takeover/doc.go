// Package takeover takes over a cluster from OLM, and hands it back.
//
// Taking over is little work: the kinds, names, labels and hashes are the same, so that the
// controllers go on where OLM stopped. What this package does is to stop OLM, by scaling its
// Deployments to 0, when everything that the controllers may replace has been written down;
// handing back puts that in place again. Both are plans, made by pure functions of what was
// observed, and carried out by steps that may be repeated: whoever is interrupted begins again.
package takeover
