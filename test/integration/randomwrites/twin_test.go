// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// twin knows the truth about one object, because each value names its author.
type twin struct {
	kind
	name string
	// live are the values of the fields now; nil while there is no object.
	live map[string]string
	// authorized are the values that a trusted author wrote last; nil if the object was
	// never created by one.
	authorized map[string]string
	// trusted are all values that a trusted author ever wrote to a field.
	trusted map[string][]string
	// applied are the values of others that an apply of a trusted author stated.
	applied []string
	// vague: a trusted write may have been withheld, because an assessor was away, or
	// because the write touched a list without keys that another author had changed.
	vague bool
	// creator made the object, writers wrote the values that are there now, and wrote are
	// all who ever wrote a value to a field, by field and value.
	creator string
	writers map[string]string
	wrote   map[[2]string][]string
	// unseen are the fields that may have been written while no assessor watched: who
	// wrote them need not be known. So is the creator under the empty name.
	unseen map[string]bool
}

func newTwin(k kind, name string) *twin {
	return &twin{
		kind: k, name: name, trusted: map[string][]string{}, writers: map[string]string{},
		wrote: map[[2]string][]string{}, unseen: map[string]bool{},
	}
}

// forget says that no assessor watched for a while.
func (w *twin) forget() {
	w.unseen[""] = true
	for field := range w.live {
		w.unseen[field] = true
	}
}

// attribute notes who wrote a value that is there now.
func (w *twin) attribute(field, value, author string) {
	at := [2]string{field, value}
	w.writers[field], w.wrote[at], w.unseen[field] = author, append(w.wrote[at], author), false
}

// observeWrite takes the values after a write of an author. The author of a write through
// a subresource is empty: no stamp names that one.
func (w *twin) observeWrite(after map[string]string, author string) {
	for field, value := range after {
		if w.live[field] == value {
			continue
		}
		w.attribute(field, value, author)
		if author != guarded.CI {
			continue
		}
		w.trusted[field] = append(w.trusted[field], value)
		if w.authorized != nil {
			w.vague = w.vague || w.atomic && w.drifts()
			w.authorized[field] = value
		}
	}
	w.live = after
}

// observeApply takes the values of a trusted author's apply, which states the whole object.
// The apply may authorize the values of others, and need not: the next write of content takes
// its stamp off, perhaps before the assessor has looked.
func (w *twin) observeApply(stated map[string]string) {
	for field, value := range stated {
		if w.authorized == nil || w.authorized[field] == value {
			continue
		}
		w.trusted[field] = append(w.trusted[field], value)
		w.vague = true
		if field != replicasField { // a number names no author, and is a part of other values
			w.applied = append(w.applied, value)
		}
	}
}

// observeCreation takes the values of a new object.
func (w *twin) observeCreation(values map[string]string, author string) {
	w.live, w.creator, w.unseen[""] = values, author, false
	for field, value := range values {
		w.attribute(field, value, author)
	}
	if author != guarded.CI {
		return
	}
	w.authorized, w.vague = map[string]string{}, false
	for field, value := range values {
		w.authorized[field] = value
		w.trusted[field] = append(w.trusted[field], value)
	}
}

// drifts tells whether a value that is there was not authorized.
func (w *twin) drifts() bool {
	for field, value := range w.live {
		if w.authorized[field] != value {
			return true
		}
	}
	return false
}

// wants says which state the Baseline must come to.
func (w *twin) wants() v1alpha1.DriftState {
	switch {
	case w.live == nil && w.authorized == nil:
		return "" // there is no Baseline
	case w.live == nil:
		return v1alpha1.StateMissing
	case w.authorized == nil, w.drifts():
		return v1alpha1.StateDrifted
	default:
		return v1alpha1.StateInSync
	}
}

// compare holds what the assessor says against the truth. body is the authorized body.
func (w *twin) compare(b *v1alpha1.Baseline, body map[string]any) error {
	unstated := fmt.Sprint(body)
	for _, value := range w.applied {
		unstated = strings.ReplaceAll(unstated, value, "")
	}
	for _, untrusted := range []string{mallory, alice, scaler} {
		if strings.Contains(unstated, short(untrusted)+"-") {
			return &launderedError{fmt.Sprintf("a value of %s is authorized: %v", untrusted, body)}
		}
	}
	if w.vague {
		w.settle(body)
	}
	if b.Status.State != w.wants() {
		return fmt.Errorf("the state is %q, want %q: live %v, authorized %v", b.Status.State, w.wants(), w.live, w.authorized)
	}
	for field, value := range valuesOf(w.kind, body) {
		if value != w.authorized[field] {
			return fmt.Errorf("%s of %q is authorized, want %q", field, value, w.authorized[field])
		}
	}
	return w.compareFindings(b.Status.Findings)
}

// settle takes the authorized values after writes that may have been withheld, if a
// trusted author wrote each of them. Nothing authorized is the safe side: without a
// generation, the creator of an object that was not watched has no proof.
func (w *twin) settle(body map[string]any) {
	if body == nil {
		w.authorized = nil
		return
	}
	authorized := valuesOf(w.kind, body)
	for field, value := range authorized {
		if !slices.Contains(w.trusted[field], value) {
			return
		}
	}
	w.authorized = authorized
}

// launderedError says that a value of an untrusted author is authorized.
type launderedError struct{ what string }

func (e *launderedError) Error() string { return e.what }

// valuesOf reads the fields of an object of a kind.
func valuesOf(k kind, object map[string]any) map[string]string {
	values := map[string]string{}
	for _, field := range k.fields {
		if value, ok := follow(object, field).(string); ok {
			values[field] = value
		}
	}
	if k.scales {
		if replicas := follow(object, replicasField); replicas != nil {
			values[replicasField] = fmt.Sprint(replicas)
		}
	}
	return values
}

const replicasField = "/spec/replicas"

// follow reads the value at a JSON pointer without escapes.
func follow(value any, pointer string) any {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			if len(v) == 0 {
				return nil
			}
			value = v[len(v)-1]
			if token == "0" {
				value = v[0]
			}
		default:
			return nil
		}
	}
	return value
}

// put writes a string to a JSON pointer of an object.
func put(u *unstructured.Unstructured, pointer, value string) {
	at := strings.LastIndex(pointer, "/")
	switch parent := follow(u.Object, pointer[:at]).(type) {
	case map[string]any:
		parent[pointer[at+1:]] = value
	case []any:
		parent[0] = value
	}
}
