// Package farewell lets API servers part in time with pods that convert objects for them.
//
// API servers keep their connections to a webhook open. A pod that ends closes its side,
// and a request that is on its way then fails: it may have been served, so that it is not
// sent again. So the pods of operators that convert go on for a while when they are to end
// (webhook.AddLinger), and while they do, when nobody is led to them any more, this
// controller changes a line in the definition that means nothing else: API servers then
// make new connections and leave the old ones alone.
//
// It is keyed by Service and reads the EndpointSlices of operators, the versions that own
// them, and the definitions that these convert.
package farewell
