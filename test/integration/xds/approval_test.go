// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// anotherUserApproves demands that the author of a run decides nothing in place of the judge, and that no user
// goes past an approval by Advance.
func (s *shop) anotherUserApproves(r *v1alpha1.ABRelease) {
	s.Helper()
	verbs := []string{"approve", "promote", "skip", "retry"}
	amy, ann := s.as("amy", verbs...), s.as("ann", verbs...)
	ask := func(as client.Client, user, verb string, run int64, more string) error {
		return s.ask(as, r, fmt.Sprintf(`{"verb":%q,"run":%d,"requestedBy":%q%s}`, verb, run, user, more))
	}
	refused := func(why string) {
		s.Helper()
		s.wait(r, patience, "it is refused: "+why, func(r *v1alpha1.ABRelease) bool {
			return r.Status.Rollout.Handled != nil && strings.Contains(r.Status.Rollout.Handled.Refusal, why)
		})
	}
	inStage := func(run int64, stage int32) {
		s.Helper()
		s.wait(r, patience, fmt.Sprintf("run %d is in stage %d", run, stage), func(r *v1alpha1.ABRelease) bool {
			return r.Status.Rollout.Run.Number == run && r.Status.Rollout.Stage == stage
		})
	}
	s.must(ask(ann, "ann", "Start", 1, ""))
	inStage(1, 1)
	s.must(amy.Patch(s.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"rollout":{"approval":"NotAuthor","requestedBy":"amy"}}}`))))
	s.must(ask(ann, "ann", "Skip", 1, ""))
	refused("run 1 has no author to compare with")
	s.must(ask(amy, "amy", "Rollback", 1, ""))
	s.waits(r, "RevisionRejected")
	s.must(ask(ann, "ann", "Retry", 1, ""))
	s.waits(r, "ManualStart")
	if run := r.Status.Rollout.Run; run.Author != "amy" || run.Approval != v1alpha1.ApprovalNotAuthor {
		s.Errorf("run 2 is by %q with the policy %q", run.Author, run.Approval)
	}
	s.must(ask(amy, "amy", "Start", 2, ""))
	inStage(2, 1)
	for verb, more := range map[string]string{"Skip": "", "Promote": `,"variation":"canary"`} {
		if err := ask(amy, "amy", verb, 2, more); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "approval is NotAuthor") {
			s.Errorf("the author of the run asks for %s: %v", verb, err)
		}
	}
	s.must(ask(ann, "ann", "Advance", 2, `,"stage":3`))
	refused("stage 2 needs an approval and has no approval")
	s.must(ask(ann, "ann", "Skip", 2, ""))
	inStage(2, 2)
	if err := ask(amy, "amy", "Approve", 2, ""); !apierrors.IsForbidden(err) {
		s.Errorf("the author of the run approves: %v", err)
	}
	s.must(ask(ann, "ann", "Approve", 2, `,"stage":2`))
	s.wait(r, patience, "the canary is the active variation", func(r *v1alpha1.ABRelease) bool { return r.Status.ActiveVariation == "canary" })
}
