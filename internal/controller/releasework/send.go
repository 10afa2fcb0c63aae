// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// send sends a body, which is bound to the uid and resourceVersion in it.
func (r *Reconciler) send(ctx context.Context, action *work.Action, dryRun bool) *work.Answer {
	answer := &work.Answer{ResourceVersion: action.Body.GetResourceVersion()}
	if action.Create {
		bound(action.Body, action.Intended)
	}
	body, err := action.Body.MarshalJSON()
	if err != nil {
		answer.Result, answer.Message = work.Refused, err.Error()
		return answer
	}
	put := r.Targets.Put
	if action.Create {
		put = r.Targets.Post
	}
	kind := canon.ParseGVK(action.Body.GetAPIVersion(), action.Body.GetKind())
	raw, err := put(ctx, exec.Reference{GVK: kind, Namespace: action.Body.GetNamespace(), Name: action.Body.GetName()}, body, dryRun)
	if answer.Result = resultOf(err); err != nil {
		answer.Message = err.Error()
		return answer
	}
	if answer.Object, err = decode(raw); err != nil {
		answer.Result, answer.Message = work.Lost, err.Error()
	}
	return answer
}

// bound gives a creation the last second in which the API server admits it.
func bound(body *unstructured.Unstructured, intended time.Time) {
	annotations := body.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[repair.AnnotationNotAfter] = protocol.NotAfter(intended).UTC().Format(time.RFC3339)
	body.SetAnnotations(annotations)
}

// resultOf says what an error of a write means. The executor has the right when it sends, so what is
// forbidden is forbidden by admission; a token that is over says nothing about the write.
func resultOf(err error) work.Result {
	if apierrors.IsUnauthorized(err) {
		return work.Lost
	}
	switch exec.ResultOf(err) {
	case protocol.Stored:
		return work.Stored
	case protocol.Conflicted, protocol.Gone:
		return work.Conflicted
	case protocol.Forbidden, protocol.Refused:
		return work.Refused
	case protocol.Lost:
		return work.Lost
	}
	return work.Lost
}
