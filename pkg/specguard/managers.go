// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// managerOf is the field manager that managedFields name for a path. It is
// evidence: clients choose the name. An entry of a subresource comes first, for
// /scale takes the field from its earlier owner and its entry has no time.
func managerOf(entries []metav1.ManagedFieldsEntry, path canon.Path) (manager, subresource string, ok bool) {
	var best *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if !ownsPath(e, path) {
			continue
		}
		if best == nil || newerEntry(e, best) {
			best = e
		}
	}
	if best == nil {
		return "", "", false
	}
	return best.Manager, best.Subresource, true
}

func newerEntry(e, than *metav1.ManagedFieldsEntry) bool {
	if (e.Subresource != "") != (than.Subresource != "") {
		return e.Subresource != ""
	}
	return e.Time != nil && (than.Time == nil || than.Time.Time.Before(e.Time.Time))
}

// mainOwns tells whether managedFields prove that the last change of a path
// came through the main resource: some main entry owns it and no subresource
// does. Only the API server adds the entry of a subresource, and it adds one at
// every write through it, but for a /scale to zero, which leaves the field without
// an owner; a writer who cleared the list before gets no proof.
func mainOwns(entries []metav1.ManagedFieldsEntry, path canon.Path) bool {
	_, subresource, ok := managerOf(entries, path)
	return ok && subresource == ""
}

func ownsPath(e *metav1.ManagedFieldsEntry, path canon.Path) bool {
	_, ok := followFields(e, path)
	return ok
}

// followFields finds what an entry says at a path: the fields that it owns below, and
// "." for the value itself if it owns fields below as well.
func followFields(e *metav1.ManagedFieldsEntry, path canon.Path) (raw json.RawMessage, ok bool) {
	if e.FieldsV1 == nil || path.IsRoot() {
		return nil, false
	}
	raw = json.RawMessage(e.FieldsV1.GetRawBytes())
	for _, s := range path.Segments() {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return nil, false
		}
		if raw, ok = fieldOf(fields, s); !ok {
			return nil, false
		}
	}
	return raw, true
}

// fieldOf finds a segment among the keys of FieldsV1: f:<name>, k:<keys as
// JSON>, v:<value as JSON>.
func fieldOf(fields map[string]json.RawMessage, s canon.Segment) (json.RawMessage, bool) {
	keys := s.Keys()
	if len(keys) == 0 {
		raw, ok := fields["f:"+s.Name()]
		return raw, ok
	}
	for key, raw := range fields {
		if text, ok := strings.CutPrefix(key, "k:"); ok && keysAgree(text, keys) {
			return raw, true
		}
		if text, ok := strings.CutPrefix(key, "v:"); ok && keys[0].Key == "" && scalarOf(json.RawMessage(text)) == keys[0].Value {
			return raw, true
		}
	}
	return nil, false
}

func keysAgree(text string, keys []canon.KeyValue) bool {
	var values map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &values) != nil {
		return false
	}
	for _, kv := range keys {
		if scalarOf(values[kv.Key]) != kv.Value {
			return false
		}
	}
	return true
}

func scalarOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
