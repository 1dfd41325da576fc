// Package timeline turns Kubernetes objects into the lines of a readable story:
// what an object says now (Facts), what of that is new (Tracker), and how a line
// looks (Style). It reads and writes nothing.
package timeline
