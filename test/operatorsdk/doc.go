// Package operatorsdk sends the requests of operator-sdk, whose module cannot be built here: "run bundle", "run
// bundle-upgrade" and "cleanup", with their intervals and their numbers of attempts.
//
// The order of "operator-sdk run bundle" is CreateCatalog, StartServer, SetAddress, EnsureGroup, Subscribe, Approve and
// AwaitSucceeded. "operator-sdk run bundle-upgrade" begins with StartServer and SetAddress. After StopServer for the
// former server, it approves the next InstallPlan. [Timeout] bounds each of the commands.
package operatorsdk
