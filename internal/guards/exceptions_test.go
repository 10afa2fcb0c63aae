// SPDX-License-Identifier: Apache-2.0

package guards

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// lister answers each list with an error, or with one exception.
type lister struct {
	client.Reader
	err   error
	lists int
}

// List implements client.Reader.
func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	if exceptions, ok := list.(*v1alpha1.SpecGuardExceptionList); ok && l.err == nil {
		exceptions.Items = make([]v1alpha1.SpecGuardException, 1)
	}
	return l.err
}

var errBusy = errors.New("busy")

func TestExceptionsThatCannotBeReadExcuseNothing(t *testing.T) {
	resource := schema.GroupResource{Group: "plumbline.dev", Resource: "specguardexceptions"}
	for name, tc := range map[string]struct {
		err  error
		want int
		fail bool
	}{
		"they are read":                {nil, 1, false},
		"the kind is not known":        {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "SpecGuardException"}}, 0, false},
		"the kind is no longer served": {apierrors.NewNotFound(resource, ""), 0, false},
		"the right is missing":         {apierrors.NewForbidden(resource, "", nil), 0, false},
		"the API server is busy":       {errBusy, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ListExceptions(t.Context(), &lister{err: tc.err})
			if len(got) != tc.want || (err != nil) != tc.fail {
				t.Errorf("%d exceptions, %v", len(got), err)
			}
		})
	}
}

// Beside the rights of the former release, the cache of a server never synced, and the server neither started nor
// wrote.
func TestACacheIsAskedForExceptionsOnceTheyCanBeRead(t *testing.T) {
	cached, live := &lister{}, &lister{err: errBusy}
	reader := NewReader(cached, live)
	look := func(wantCached, wantLive int) {
		t.Helper()
		_, _ = ListExceptions(t.Context(), reader)
		if cached.lists != wantCached || live.lists != wantLive {
			t.Errorf("%d lists of the cache and %d of the API server, want %d and %d", cached.lists, live.lists, wantCached, wantLive)
		}
	}
	look(0, 1)
	look(0, 2)
	live.err = nil
	look(0, 3)
	look(1, 3)
	if err := reader.List(t.Context(), &v1alpha1.SpecGuardList{}); err != nil || cached.lists != 2 || live.lists != 3 {
		t.Errorf("guards are read past the cache: %v", err)
	}
}
