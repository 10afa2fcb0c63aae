// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/console/pages"
	"github.com/plumbline-dev/plumbline/internal/serve/rights"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Console returns what the pages of the console read, with the rights of the caller of each request.
func (c *Cluster) Console() pages.Cluster {
	return pages.Cluster{Cluster: c, Mapper: c.RESTMapper(), Live: c.live, Allows: c.allowsCaller, HasLogout: true}
}

// live reads an object as the API server writes it, with the token of the caller.
func (c *Cluster) live(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error) {
	of := mapping.GroupVersionKind
	return c.DryRuns().Get(ctx, exec.Reference{GVK: canon.GVK{Group: of.Group, Version: of.Version, Kind: of.Kind}, Namespace: namespace, Name: name})
}

// allowsCaller tells whether the caller has a right. A token that the API server does not take writes nothing,
// whatever the rights of its user.
func (c *Cluster) allowsCaller(ctx context.Context, of *authorizationv1.ResourceAttributes) (bool, error) {
	caller, err := identified(ctx)
	switch {
	case err != nil:
		return false, err
	case !caller.MayWrite && of.Verb != "get" && of.Verb != "list":
		return false, TokenAudience()
	}
	right := rights.Right{Verb: of.Verb, Resource: schema.GroupResource{Group: of.Group, Resource: of.Resource}, Namespace: of.Namespace, Name: of.Name}
	return c.allows(ctx, caller, right)
}
