// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// RedactObject returns the canonical content of an object with every value replaced that looks
// like a secret, by the rules of [Redact]. Everything below the top-level data, binaryData and
// stringData is replaced, whatever the kind. Metadata and status are no part of the content.
func RedactObject(object []byte, gvk canon.GVK) ([]byte, error) {
	document, err := canon.Parse(object, gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	canonical := document.AppendCanonical(nil)
	document.Release()
	content, err := parseTree(canonical)
	if err != nil {
		return nil, fmt.Errorf("reading the content of the object: %w", err)
	}
	rest := &tree{kind: canon.Map}
	for _, m := range content.members {
		if isPayload(m.key) {
			m.value.hide()
			continue
		}
		rest.members = append(rest.members, m)
	}
	rest.redact()
	return content.appendJSON(nil), nil
}
