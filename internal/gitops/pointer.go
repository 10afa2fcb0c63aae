// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// remove takes what a JSON pointer (RFC 6901) names out of a document, by the
// library that both tools use. A pointer that leads nowhere leaves it as it is.
func remove(document []byte, pointer string) []byte {
	operation, err := json.Marshal([]map[string]string{{"op": "remove", "path": pointer}})
	if err != nil {
		return document
	}
	patch, err := jsonpatch.DecodePatch(operation)
	if err != nil {
		return document
	}
	changed, err := patch.Apply(document)
	if err != nil {
		return document
	}
	return changed
}

// unescape is the order that RFC 6901 section 4 asks for.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// has tells whether a pointer leads to a value.
func has(value any, pointer string) bool {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch container := value.(type) {
		case map[string]any:
			next, ok := container[unescape.Replace(token)]
			if !ok {
				return false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(container) {
				return false
			}
			value = container[i]
		default:
			return false
		}
	}
	return true
}
