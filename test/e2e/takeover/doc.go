// Package takeover takes over clusters in the state in which OLM leaves them, and hands them back.
package takeover
