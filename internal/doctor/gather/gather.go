// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// pageSize bounds what one answer of the API server holds.
const pageSize = 500

// Options say what to look at.
type Options struct {
	// Namespace of the installation; empty: found by its labels.
	Namespace string
	// ProbeNamespace is where the dry-run write goes; empty: where a guard is.
	ProbeNamespace string
	// NoProbes leaves out the writes.
	NoProbes bool
	// ClientVersion is the plugin's.
	ClientVersion string
	// Now is the caller's clock.
	Now func() time.Time
}

// reader holds the clients of one run.
type reader struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	raw       rest.Interface
	http      *http.Client
	config    *rest.Config
	options   Options
	snapshot  *doctor.Snapshot
}

// Snapshot reads a cluster. It fails only when the API server cannot be asked at
// all; every other failure is part of the snapshot.
func Snapshot(ctx context.Context, config *rest.Config, options Options) (*doctor.Snapshot, error) {
	r, err := newReader(config, options)
	if err != nil {
		return nil, err
	}
	if err := r.server(ctx); err != nil {
		return nil, err
	}
	r.cluster(ctx)
	r.findNamespace(ctx)
	if r.snapshot.Namespace != "" {
		r.installation(ctx)
	}
	if r.snapshot.GitOpsTool() {
		r.gitOps(ctx)
	}
	if !options.NoProbes {
		r.probes(ctx)
	}
	return r.snapshot, nil
}

func newReader(config *rest.Config, options Options) (*reader, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // the dry runs earn warnings, which would only confuse
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, discoveryv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	direct, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return &reader{http: direct, client: c, discovery: d, raw: d.RESTClient(), config: config, options: options, snapshot: &doctor.Snapshot{
		Now: options.Now(), ClientVersion: options.ClientVersion, Namespace: options.Namespace,
	}}, nil
}

// result turns the outcome of a request into a read; right is what it takes.
func result[T any](value T, right string, err error) doctor.Read[T] {
	switch {
	case err == nil:
		return doctor.Got(value)
	case meta.IsNoMatchError(err), isAbsent(err):
		return doctor.Gone[T]()
	case apierrors.IsForbidden(err):
		return doctor.Read[T]{Reason: err.Error(), Right: right}
	default:
		return doctor.Read[T]{Reason: err.Error()}
	}
}

// isAbsent tells a missing object from a path that the server does not know:
// only of the first does it give the name.
func isAbsent(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name != ""
}

// pages lists page by page; each is called after every page.
func (r *reader) pages(ctx context.Context, list client.ObjectList, each func(), options ...client.ListOption) error {
	for token := ""; ; {
		if err := r.client.List(ctx, list, append(slices.Clone(options), client.Limit(pageSize), client.Continue(token))...); err != nil {
			return err
		}
		each()
		if token = list.GetContinue(); token == "" {
			return nil
		}
	}
}

// server asks who answers, what it serves, who asks, and what time it is there.
func (r *reader) server(ctx context.Context) error {
	s := r.snapshot
	version, err := r.discovery.ServerVersion()
	if err != nil && !isStatus(err) {
		return err
	}
	s.Server = result(doctor.ServerVersion{}, "get /version", err)
	if err == nil {
		s.Server.Value = parseVersion(version)
	}
	s.Resources = r.resources()
	before := r.options.Now()
	review := &authenticationv1.SelfSubjectReview{}
	err = r.client.Create(ctx, review)
	info := review.Status.UserInfo
	s.User = result(doctor.User{Name: info.Username, Groups: info.Groups}, "create selfsubjectreviews.authentication.k8s.io", err)
	if at := review.CreationTimestamp; err == nil && !at.IsZero() {
		s.Skew = doctor.Got(before.Truncate(time.Second).Sub(at.Time))
		s.Now = at.Time
	}
	return nil
}

func isStatus(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

// resources is discovery. A group that cannot be asked, such as one of a broken
// aggregated API, leaves the others known, unless it is one that checks ask for.
func (r *reader) resources() doctor.Read[[]doctor.Resource] {
	_, lists, err := r.discovery.ServerGroupsAndResources()
	if failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); partial {
		err = nil
		for group, cause := range failed.Groups {
			if group.Group == v1alpha1.GroupVersion.Group || group.Group == admissionv1.GroupName || group.Group == appsv1.GroupName {
				err = fmt.Errorf("discovering %s: %w", group, cause)
			}
		}
	}
	return result(flatten(lists), "get the API's discovery", err)
}

// cluster reads what does not depend on where Plumbline is installed.
func (r *reader) cluster(ctx context.Context) {
	s := r.snapshot
	s.Webhooks = r.webhooks(ctx)
	s.Policies = r.policies(ctx)
	s.Namespaces = r.namespaces(ctx)
	s.Guards = r.guards(ctx)
	s.Baselines = r.baselines(ctx)
	s.Roles = r.roles(ctx)
	s.APIServers = r.apiServers(ctx)
	s.Mesh.Injected, s.Mesh.Doubled = r.injected(ctx)
	r.remediation(ctx)
	r.readRouters(ctx)
}
