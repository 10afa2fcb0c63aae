// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
)

// auditObject is what is needed of a body, whole or as a merge patch.
type auditObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
}

// patchOperation is one operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// details of a write that counts.
func (e auditEvent) details(user string, certain bool) Write {
	ref := *e.ObjectRef
	request, requestRead := readBody(e.RequestObject)
	answer, answerRead := readBody(e.ResponseObject)
	if answer.Kind == "Status" { // of a deletion, or an error: not the object
		answer, answerRead = auditObject{}, false
	}
	w := Write{
		AuditID: e.AuditID, At: e.Received, User: user, Verb: e.Verb,
		Group: ref.APIGroup, Resource: ref.Resource, Namespace: ref.Namespace, Certain: certain,
		Kind: answer.Kind, Name: cmp.Or(ref.Name, answer.Metadata.Name, request.Metadata.Name),
		UID:    cmp.Or(answer.Metadata.UID, ref.UID, request.Metadata.UID),
		Bodies: requestRead || answerRead,
		Before: request.Metadata.ResourceVersion, After: answer.Metadata.ResourceVersion,
	}
	if ref.Subresource != "" {
		w.Resource += "/" + ref.Subresource
		w.Kind = "" // that of a Scale or a Status, not of the object
	}
	w.mark(request.Metadata.Labels)
	if !requestRead {
		// An apply in YAML, say. The answer may show the marks of an earlier
		// step, so it counts only where the request cannot be read.
		w.mark(answer.Metadata.Labels)
	}
	return w
}

// mark reads the marks from labels. An object that was fenced once keeps that
// mark, so those of a step come first.
func (w *Write) mark(labels map[string]string) {
	if labels[LabelPlan] != "" {
		w.Plan, w.Step = labels[LabelPlan], labels[LabelStep]
		return
	}
	if w.Plan, w.Step, w.Standby = strings.Cut(labels[LabelStandby], "."); w.Standby {
		w.Step, _, _ = strings.Cut(w.Step, ".")
		return
	}
	w.Plan, w.Step, w.Fence = strings.Cut(labels[LabelFence], ".")
	w.Work = cmp.Or(labels[LabelReleaseWork], labels[LabelReleaseWorkFence])
}

// readBody of a request or an answer; false if there is none to be read.
func readBody(raw json.RawMessage) (auditObject, bool) {
	var o auditObject
	trimmed := strings.TrimSpace(string(raw))
	if trimmed == "" || trimmed == "null" {
		return o, false
	}
	if strings.HasPrefix(trimmed, "[") {
		var operations []patchOperation
		if json.Unmarshal(raw, &operations) != nil {
			return o, false
		}
		return patched(operations), true
	}
	if json.Unmarshal(raw, &o) != nil {
		return auditObject{}, false
	}
	return o, true
}

// patched is what a JSON patch says of marks and preconditions. A test of the
// resourceVersion is the usual precondition of such a patch; replacing it is
// the API server's own.
func patched(operations []patchOperation) auditObject {
	var o auditObject
	o.Metadata.Labels = map[string]string{}
	for _, op := range operations {
		var text string
		switch {
		case op.Path == "/metadata/resourceVersion" && json.Unmarshal(op.Value, &text) == nil:
			o.Metadata.ResourceVersion = text
		case op.Path == "/metadata/uid" && json.Unmarshal(op.Value, &text) == nil:
			o.Metadata.UID = text
		case op.Path == "/metadata/labels" && op.Op != "test":
			var labels map[string]string
			if json.Unmarshal(op.Value, &labels) == nil {
				maps.Copy(o.Metadata.Labels, labels)
			}
		case strings.HasPrefix(op.Path, "/metadata/labels/") && (op.Op == "add" || op.Op == "replace"):
			if json.Unmarshal(op.Value, &text) == nil {
				key := strings.TrimPrefix(op.Path, "/metadata/labels/")
				o.Metadata.Labels[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)] = text
			}
		}
	}
	return o
}
