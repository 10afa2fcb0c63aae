// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
)

// Cluster is the API server, as the caller of the request may read and write it. The caller is that of
// the context, or the only one that there is.
type Cluster interface {
	client.WithWatch
	Processes
	// Whoami asks the API server for the name and the groups of the caller.
	Whoami(ctx context.Context) (authenticationv1.UserInfo, error)
	// DryRuns sends the dry runs of a preview.
	DryRuns() exec.Targets
	// Now is the time of the API server.
	Now() time.Time
}

// chunk is how many objects are read at once.
const chunk = 500

// ReadAll reads the objects of a kind, of all namespaces where none is named.
func ReadAll[T client.Object](ctx context.Context, c Cluster, kind string, newList func() client.ObjectList, namespace string) ([]T, error) {
	all, _, err := readVersion[T](ctx, c, kind, newList, namespace)
	return all, err
}

// readVersion reads the objects of a kind, and the version from which a watch goes on. Each chunk has a list of
// its own, since an object that is decoded into a used list can keep fields of the chunk before.
func readVersion[T client.Object](ctx context.Context, c Cluster, kind string, newList func() client.ObjectList, namespace string) (all []T, version string, err error) {
	for next := ""; ; {
		list := newList()
		if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(chunk), client.Continue(next)); err != nil {
			return nil, "", &requestError{verb: "list", kind: kind, namespace: namespace, err: err}
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			all = append(all, o.(T)) //nolint:forcetypeassert // the list has no other items
			return nil
		})
		if err != nil {
			return nil, "", fmt.Errorf("reading a list of %s: %w", kind, err)
		}
		if next = list.GetContinue(); next == "" {
			return all, list.GetResourceVersion(), nil
		}
	}
}

// ReadOne reads an object by its name.
func ReadOne[T client.Object](ctx context.Context, c Cluster, kind string, object T, namespace, name string) (T, error) {
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return object, &requestError{verb: "get", kind: kind, namespace: namespace, err: err}
	}
	return object, nil
}

// requestError names a request to the API server that failed. [problemOf] makes a problem of it.
type requestError struct {
	verb, kind, namespace string
	err                   error
	// locate returns where the body of the caller has a field of the kind; nil where the caller sent no field.
	locate func(field string) string
}

func (e *requestError) Error() string {
	return fmt.Sprintf("%s %s in namespace %q: %v", e.verb, e.kind, e.namespace, e.err)
}

func (e *requestError) Unwrap() error { return e.err }

// readUids reads the uids that other objects are shown with. Uids that the caller may not read are
// left out, and so are those of a kind that is not installed; withheld is the reason.
func readUids(ctx context.Context, c Cluster, withNamespaces bool) (uids *wire.Uids, withheld, err error) {
	uids = &wire.Uids{Environments: map[string]string{}, Namespaces: map[string]string{}, EnvironmentOf: map[string]string{}}
	known, err := environments.all(ctx, c, "")
	if withheld, err = withhold(err); err != nil {
		return nil, nil, err
	}
	for _, e := range known {
		uids.Environments[e.Name] = string(e.UID)
	}
	if !withNamespaces {
		return uids, withheld, nil
	}
	namespaces, err := ReadAll[*corev1.Namespace](ctx, c, "Namespace", func() client.ObjectList { return &corev1.NamespaceList{} }, "")
	unread, err := withhold(err)
	if err != nil {
		return nil, nil, err
	}
	sets := map[string]labels.Set{}
	for _, n := range namespaces {
		uids.Namespaces[n.Name], sets[n.Name] = string(n.UID), n.Labels
	}
	assignment := environment.Assign(known, sets)
	for namespace := range sets {
		if e := assignment.Of(namespace); e != nil {
			uids.EnvironmentOf[namespace] = e.Name
		}
	}
	return uids, errors.Join(withheld, unread), nil
}

// withhold tells errors that say that the caller may not read, or that the cluster lacks the kind, from
// all others.
func withhold(err error) (withheld, other error) {
	if apierrors.IsForbidden(err) || kindIsMissing(err) {
		return err, nil
	}
	return nil, err
}
