// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAKindThatIsGoneIsToldFromAnObjectThatIsGone(t *testing.T) {
	baselines := v1alpha1.GroupVersion.WithResource("baselines").GroupResource()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an object that is gone": {err: apierrors.NewNotFound(baselines, "deployments.apps.web")},
		"a kind that is gone": {
			err:  apierrors.NewGenericServerResponse(http.StatusNotFound, "POST", baselines, "", "404 page not found", 0, true),
			want: true,
		},
		"a kind that is gone, asked by name": {
			err:  apierrors.NewGenericServerResponse(http.StatusNotFound, "PUT", baselines, "deployments.apps.web", "404 page not found", 0, true),
			want: true,
		},
		"its definition": {
			err:  apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "baselines.plumbline.dev"),
			want: true,
		},
		"a kind that discovery does not know": {err: &meta.NoKindMatchError{}, want: true},
		"a conflict":                          {err: apierrors.NewConflict(baselines, "x", errors.New("written meanwhile"))},
		"anything else":                       {err: errors.New("connection refused")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsUnserved(fmt.Errorf("writing: %w", tc.err)); got != tc.want {
				t.Errorf("IsUnserved(%v) is %t", tc.err, got)
			}
		})
	}
}

func TestVersionsAreComparedAsNumbersOrNotAtAll(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"a smaller number was first":     {a: "9", b: "10", want: true},
		"a greater one was not":          {a: "10", b: "9"},
		"nor is a version before itself": {a: "10", b: "10"},
		"of text nothing is said":        {a: "9", b: "x"},
		"nor of nothing":                 {a: "", b: "1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsOlder(tc.a, tc.b); got != tc.want {
				t.Errorf("IsOlder(%q, %q) is %t", tc.a, tc.b, got)
			}
		})
	}
}
