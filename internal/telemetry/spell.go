// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/plumbline-dev/plumbline/pkg/printable"

// SpellWord spells a word of the API as logs and metrics do: WouldNotConverge is would_not_converge.
func SpellWord(word string) string { return printable.SnakeCase(word) }
