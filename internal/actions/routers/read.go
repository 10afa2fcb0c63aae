// SPDX-License-Identifier: Apache-2.0

package routers

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// pageSize bounds one answer of the API server.
const pageSize = 500

// ReadRouter returns a TrafficRouter with the releases that name it. A user who may not list releases gets a report that says
// so.
func ReadRouter(ctx context.Context, c client.Reader, name string) (*v1alpha1.TrafficRouter, []v1alpha1.ABRelease, *Report, error) {
	router := &v1alpha1.TrafficRouter{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, router); err != nil {
		return nil, nil, nil, err //nolint:wrapcheck // the words of the API server are the user's answer
	}
	releases, unread, err := ListReleases(ctx, c)
	if err != nil {
		return nil, nil, nil, err
	}
	report := DescribeRouter(router, releases)
	report.Unread = unread
	return router, releases, report, nil
}

// ListReleases returns the releases of all namespaces. unread says why a user may not list these.
func ListReleases(ctx context.Context, c client.Reader) (releases []v1alpha1.ABRelease, unread string, err error) {
	for token := ""; ; {
		page := &v1alpha1.ABReleaseList{}
		err := c.List(ctx, page, client.Limit(pageSize), client.Continue(token))
		if apierrors.IsForbidden(err) {
			return nil, err.Error(), nil
		}
		if err != nil {
			return nil, "", err //nolint:wrapcheck // as above
		}
		releases = append(releases, page.Items...)
		if token = page.Continue; token == "" {
			return releases, "", nil
		}
	}
}
