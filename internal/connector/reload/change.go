// SPDX-License-Identifier: Apache-2.0

package reload

// Step of a change of the files.
type Step int

// The steps, in order.
const (
	Checked Step = iota
	Written
	Reloaded
)

// RefusedError is a configuration that the program refuses.
type RefusedError struct {
	// Program is its name for people, such as HAProxy.
	Program string
	// At is version, check or reload.
	At string
	// Said are the program's own words.
	Said string
}

func (e *RefusedError) Error() string {
	return e.Program + " refuses the configuration at the " + e.At + ": " + e.Said
}
