// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"strings"
)

// RefusedError says that a release gives no body that can be written.
type RefusedError struct {
	// Field of the release that is to change, such as "spec.variations[canary].clone.image".
	Field string
	// Message tells the cause and the remedy.
	Message string
}

// Error returns the field and the message.
func (r *RefusedError) Error() string { return r.Field + ": " + r.Message }

func refuse(field, format string, args ...any) error {
	return &RefusedError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// fieldOf returns the path of a field of a variation.
func fieldOf(variation, more string) string {
	return "spec.variations[" + variation + "]." + more
}

func list(names []string) string { return strings.Join(names, ", ") }
