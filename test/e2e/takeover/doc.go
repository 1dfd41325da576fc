// Package takeover takes over clusters that look as OLM leaves them, and hands them back.
package takeover
