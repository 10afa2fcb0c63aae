// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

func TestResultOf(t *testing.T) {
	of := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		err  error
		want work.Result
	}{
		"no error is stored":                      {nil, work.Stored},
		"another version conflicts":               {apierrors.NewConflict(of, "web", errors.New("old")), work.Conflicted},
		"a name that is taken conflicts":          {apierrors.NewAlreadyExists(of, "web"), work.Conflicted},
		"an object that is gone conflicts":        {apierrors.NewNotFound(of, "web"), work.Conflicted},
		"what admission forbids is refused":       {apierrors.NewForbidden(of, "web", errors.New("quota")), work.Refused},
		"an invalid object is refused":            {apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil), work.Refused},
		"a token that is over says nothing":       {apierrors.NewUnauthorized("over"), work.Lost},
		"an API server that is busy says nothing": {apierrors.NewTooManyRequests("busy", 1), work.Lost},
		"a broken connection says nothing":        {errors.New("reset"), work.Lost},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestBound_GivesACreationItsLastSecond(t *testing.T) {
	body := &unstructured.Unstructured{Object: map[string]any{}}
	bound(body, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if got := body.GetAnnotations()[repair.AnnotationNotAfter]; got != "2026-03-01T12:00:44Z" {
		t.Errorf("the creation is admitted until %s", got)
	}
}

func TestUnfinished_LooksAtNoWorkOfThePast(t *testing.T) {
	w := &v1alpha1.ReleaseWork{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	if !unfinished().Create(event.CreateEvent{Object: w}) {
		t.Error("a new work is not looked at")
	}
	w.Status.Phase = v1alpha1.WorkSucceeded
	if unfinished().Create(event.CreateEvent{Object: w}) {
		t.Error("a work that has ended is looked at")
	}
}

func TestToolOf(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if got := toolOf(object); got != "" {
		t.Errorf("an object without marks is of %s", got)
	}
	object.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"})
	if got := toolOf(object); got != "Argo CD" {
		t.Errorf("a tracking annotation is of %q", got)
	}
	object.SetLabels(map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop"})
	if got := toolOf(object); got != "Flux" {
		t.Errorf("a label of Flux is of %q", got)
	}
}

// TestTheAuditLogAndWorksHaveOneLabel: the label that a write carries is the one that the audit log is
// read by.
func TestTheAuditLogAndWorksHaveOneLabel(t *testing.T) {
	if evidence.LabelReleaseWork != v1alpha1.LabelReleaseWork {
		t.Errorf("the audit log is read by %s, and writes carry %s", evidence.LabelReleaseWork, v1alpha1.LabelReleaseWork)
	}
}
