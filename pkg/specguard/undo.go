// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// ErrFormerNeeded is returned by Step when former authorized bodies decide whether an
// undo authorizes its template: load Input.Former and step again.
var ErrFormerNeeded = errors.New("the former authorized bodies are needed")

// Former are the authorized bodies of before that are kept, in any order.
type Former struct {
	// Loaded says that each body that is kept is among Bodies, or is known to be gone.
	Loaded bool
	Bodies [][]byte
}

// An undo writes to a workload the pod template of an old ReplicaSet or
// ControllerRevision. Tenants with the role edit may write to those, so the template
// need not be one that a trusted writer ever wrote.

var templatePath = mustPaths("/spec/template")[0]

// undoManagers are the field managers of kubectl rollout. The verb undo names none, so
// the API server takes the name of the program.
var undoManagers = []string{"kubectl", "kubectl-rollout"}

// collectiveManagers name no tool: the API server merges entries of others into these.
var collectiveManagers = []string{"ancient-changes", "before-first-apply"}

// undoTrace is what managedFields tell of the tool of one write.
type undoTrace uint8

const (
	// traceNone: no entry is that of the write.
	traceNone undoTrace = iota
	// traceUndo: the entry is that of a tool that writes undos.
	traceUndo
	// traceOther: the entry is that of another tool.
	traceOther
)

// withholdUndo takes the authorization from the changes of a pod template that a write
// may have brought back from its history, unless a former authorized body has that
// template. prev is nil across a gap.
func (s *step) withholdUndo(prev *Version, records []int) error {
	changed := s.listTemplateChanges()
	if len(changed) == 0 {
		return nil
	}
	if prev != nil && len(prev.Managers) == 0 { // not kept, or cleared: nothing grew from them
		prev = nil
	}
	trace := findUndoTrace(changed, prev, &s.obs.Version)
	if trace == traceOther || trace == traceNone && (s.isOtherTool(records) || s.onlyRemoves(changed)) {
		return nil
	}
	if trace == traceNone && s.waitForRecord(s.obs.SeenAt) {
		return nil // the record may name the tool
	}
	if !s.in.Former.Loaded {
		return ErrFormerNeeded
	}
	if s.wasAuthorized() {
		return nil
	}
	s.tellUndo(trace, changed, s.withdrawTemplate())
	return nil
}

// listTemplateChanges lists the authorized changes of a pod template that move it from
// what is authorized.
func (s *step) listTemplateChanges() []diff.Change {
	if !keepsTemplates(s.gvk) {
		return nil
	}
	var changed []diff.Change
	for _, j := range s.written {
		if !j.authorized || !j.Path.Overlaps(templatePath) {
			continue
		}
		if !s.want.Root().Follow(j.Path).Equal(s.doc.Root().Follow(j.Path)) {
			changed = append(changed, j.Change)
		}
	}
	return changed
}

// keepsTemplates tells whether ReplicaSets or ControllerRevisions hold the former pod
// templates of a kind.
func keepsTemplates(gvk canon.GVK) bool {
	return gvk.Group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, gvk.Kind)
}

// findUndoTrace finds the entry that the API server wrote for a write. Between two
// versions that followed each other, an entry is that of the write if it grew, or if it
// owns a changed value: the API server takes a changed value from all other entries.
// Across a gap, prev is nil, and the owners of the changed values are believed.
func findUndoTrace(changes []diff.Change, prev, now *Version) undoTrace {
	trace := traceNone
	for i := range now.Managers {
		e := &now.Managers[i]
		switch {
		case e.Subresource != "" || slices.Contains(collectiveManagers, e.Manager):
		case prev == nil && !ownsChanged(e, changes, ownsPath):
		case prev != nil && !hasGrown(prev.Managers, e) && !ownsChanged(e, changes, ownsValue):
		case e.Operation == metav1.ManagedFieldsOperationUpdate && slices.Contains(undoManagers, e.Manager):
			return traceUndo
		default:
			trace = traceOther
		}
	}
	return trace
}

// hasGrown tells whether a write added to an entry: its time, or fields.
func hasGrown(before []metav1.ManagedFieldsEntry, e *metav1.ManagedFieldsEntry) bool {
	return !slices.ContainsFunc(before, func(o metav1.ManagedFieldsEntry) bool {
		return o.Manager == e.Manager && o.Operation == e.Operation && o.APIVersion == e.APIVersion && o.Subresource == e.Subresource &&
			o.Time.Equal(e.Time) && !addsFields(readFields(&o), readFields(e))
	})
}

// readFields reads the fields that an entry owns.
func readFields(e *metav1.ManagedFieldsEntry) json.RawMessage {
	if e.FieldsV1 == nil {
		return nil
	}
	return e.FieldsV1.GetRawBytes()
}

// addsFields tells whether a set of fields has one that another set lacks.
func addsFields(before, after json.RawMessage) bool {
	var old, fields map[string]json.RawMessage
	if bytes.Equal(before, after) || json.Unmarshal(after, &fields) != nil {
		return false
	}
	if json.Unmarshal(before, &old) != nil {
		return len(fields) > 0
	}
	for key, raw := range fields {
		if was, ok := old[key]; !ok || addsFields(was, raw) {
			return true
		}
	}
	return false
}

// ownsChanged tells whether an entry owns one of the values that a write left.
func ownsChanged(e *metav1.ManagedFieldsEntry, changes []diff.Change, owns func(*metav1.ManagedFieldsEntry, canon.Path) bool) bool {
	return slices.ContainsFunc(changes, func(c diff.Change) bool { return c.After != nil && owns(e, c.Path) })
}

// ownsValue tells whether an entry owns the very value at a path, and not only fields
// below: a tenant may add such fields to an entry.
func ownsValue(e *metav1.ManagedFieldsEntry, path canon.Path) bool {
	raw, ok := followFields(e, path)
	if !ok {
		return false
	}
	var below map[string]json.RawMessage
	if json.Unmarshal(raw, &below) != nil {
		return false
	}
	_, itself := below["."]
	return itself || len(below) == 0
}

// onlyRemoves tells whether a write removed parts of a template and did nothing else. Such a
// write leaves no entry, whatever the tool. An object without any entry is another case:
// the API server tracks none of its writes.
func (s *step) onlyRemoves(changed []diff.Change) bool {
	return len(s.obs.Managers) > 0 && !slices.ContainsFunc(changed, func(c diff.Change) bool { return c.Op != diff.Removed })
}

// isOtherTool tells whether the API server itself recorded the write, with a field
// manager that the client chose and that is none of kubectl rollout.
func (s *step) isOtherTool(records []int) bool {
	return slices.ContainsFunc(records, func(i int) bool {
		r := &s.in.Records[i]
		return r.Authenticated && r.User == s.obs.Writer && r.FieldManager != "" && !slices.Contains(undoManagers, r.FieldManager)
	})
}

// wasAuthorized tells whether a former authorized body has the observed pod template.
func (s *step) wasAuthorized() bool {
	return slices.ContainsFunc(s.in.Former.Bodies, func(body []byte) bool {
		former, err := canon.Parse(body, s.gvk)
		if err != nil {
			return false // an unreadable body vouches for nothing
		}
		defer former.Release()
		return !slices.ContainsFunc(diff.Compare(former, s.doc, s.in.Rules.Excluded()...), func(c diff.Change) bool {
			return c.Path.Overlaps(templatePath)
		})
	})
}

// withdrawTemplate takes the authorization from all changes of the pod template, and
// returns the name of their writer.
func (s *step) withdrawTemplate() (by string) {
	for i := range s.written {
		if j := &s.written[i]; j.authorized && j.Path.Overlaps(templatePath) {
			j.authorized, by = false, nameOf(j.actor)
		}
	}
	return by
}

// tellUndo says which changes of the pod template stay drift, and why.
func (s *step) tellUndo(trace undoTrace, changes []diff.Change, by string) {
	what := "rollout undo brings back a template that was never authorized, as far as revisions are kept"
	if trace == traceNone {
		what = "rollout undo may have brought back a template that was never authorized, for no field manager names another tool"
	}
	s.event(EventWarning, ReasonWithheld, "%s: %s wrote %s, which stays drift until it is accepted or written again", what, by, listPaths(changes, nil))
}
