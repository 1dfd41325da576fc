// Package authoring runs the commands in the documentation for authors of catalogs.
package authoring
