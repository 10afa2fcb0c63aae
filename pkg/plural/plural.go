// SPDX-License-Identifier: Apache-2.0

// Package plural writes counts for people.
package plural

import "fmt"

// Of returns a count with its noun, such as "1 target" and "2 targets".
func Of(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, Noun(n, noun))
}

// Noun returns a regular noun in the number of a count.
func Noun(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// Verb returns the form of a verb that fits a count, such as "is" and "are".
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
