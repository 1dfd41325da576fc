// Package timeline converts Kubernetes objects to the lines of a timeline: the current facts about
// an object (Facts), the new ones among them (Tracker), and the format of a line (Style). It
// performs no I/O.
package timeline
