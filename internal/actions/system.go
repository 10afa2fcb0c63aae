// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FindSystem returns the namespace in which Plumbline runs: that of its ledgers, or the usual one before there are
// any. A user who may not list ledgers gets the namespace of the Deployments, and a user who may list neither gets
// the usual one. The error is a *SeveralSystemsError if there is more than one such namespace.
func FindSystem(ctx context.Context, c client.Reader) (string, error) {
	system, err := FindSystemOfLedgers(ctx, c)
	if apierrors.IsForbidden(err) {
		return findDeployments(ctx, c)
	}
	return system, err
}

// FindSystemOfLedgers returns the namespace of the ledgers, or the usual one before there are any. A user who may not list
// ledgers gets the refusal of the API server.
func FindSystemOfLedgers(ctx context.Context, c client.Reader) (string, error) {
	ledgers, err := ListLedgers(ctx, c, "")
	switch {
	case err != nil:
		return "", err
	case len(ledgers) == 0:
		return SystemNamespace, nil
	}
	return cmp.Or(ledgers[0].Namespace, SystemNamespace), nil
}

// findDeployments returns the namespace with the Deployments of Plumbline, as [FindSystem] does.
func findDeployments(ctx context.Context, c client.Reader) (string, error) {
	deployments := &metav1.PartialObjectMetadataList{}
	deployments.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DeploymentList"})
	err := c.List(ctx, deployments, client.MatchingLabels{"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": "webhook"})
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	var namespaces []string
	for i := range deployments.Items {
		namespaces = append(namespaces, deployments.Items[i].Namespace)
	}
	slices.Sort(namespaces)
	switch namespaces = slices.Compact(namespaces); len(namespaces) {
	case 0:
		return SystemNamespace, nil
	case 1:
		return namespaces[0], nil
	default:
		return "", &SeveralSystemsError{Namespaces: namespaces}
	}
}
