// Package suite tests takeover and handback on a real API server, with a crash at every write.
package suite
