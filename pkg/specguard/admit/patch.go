// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// stamp is one annotation as it has to be; absent when wanted is false.
type stamp struct {
	key    string
	value  string
	wanted bool
}

// patchOperation is one step of a JSON Patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const annotationsPath = "/metadata/annotations"

// stampPatch brings annotations to where stamps want them; nil when they are
// there. It never touches another annotation.
func stampPatch(o object, stamps []stamp) ([]byte, error) {
	var steps []patchOperation
	fresh := map[string]string{}
	for _, s := range stamps {
		present, ok := o.annotation(s.key)
		switch {
		case s.wanted && ok && present == s.value, !s.wanted && !ok:
		case !s.wanted:
			steps = append(steps, patchOperation{Op: "remove", Path: annotationsPath + "/" + escapePointer(s.key)})
		case !o.hasAnnotations():
			fresh[s.key] = s.value
		default:
			steps = append(steps, patchOperation{Op: "add", Path: annotationsPath + "/" + escapePointer(s.key), Value: s.value})
		}
	}
	if len(fresh) > 0 {
		// Absent or null: the map itself has to be added, "add" into it would fail.
		steps = append(steps, patchOperation{Op: "add", Path: annotationsPath, Value: fresh})
	}
	if len(steps) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(steps)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return raw, nil
}

// escapePointer escapes a key for a JSON Pointer (RFC 6901 §3).
func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
