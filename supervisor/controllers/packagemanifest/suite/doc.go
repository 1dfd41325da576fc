// Package suite tests PackageManifests through a real API server.
package suite
