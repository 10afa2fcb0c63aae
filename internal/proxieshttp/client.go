// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Get fetches a path of a replica, with a query.
type Get func(ctx context.Context, path string, query map[string]string) ([]byte, error)

// Client asks one replica of the discovery server.
type Client struct{ Get Get }

// errEndless is what is said of a replica whose pages do not go on.
var errEndless = errors.New("reading proxies: the pages repeat themselves")

// List reads all pages.
func (c Client) List(ctx context.Context, f Filter) (List, error) {
	all := List{Proxies: []Proxy{}}
	for {
		page, err := c.get(ctx, Prefix, f)
		if err != nil {
			return all, err
		}
		all.Replica = page.Replica
		all.Proxies = append(all.Proxies, page.Proxies...)
		if page.Continue == "" {
			return all, nil
		}
		if f.Continue != "" && place(page.Continue).Compare(place(f.Continue)) <= 0 {
			return all, errEndless
		}
		f.Continue = page.Continue
	}
}

// Proxy reads all resources of the proxy of a pod; false when the replica does not know
// it.
func (c Client) Proxy(ctx context.Context, namespace, pod string, f Filter) (List, bool, error) {
	f.Namespace, f.Pod = "", ""
	list, err := c.get(ctx, Prefix+"/"+url.PathEscape(namespace)+"/"+url.PathEscape(pod), f)
	if apierrors.IsNotFound(err) {
		return List{}, false, nil
	}
	return list, err == nil, err
}

func (c Client) get(ctx context.Context, path string, f Filter) (list List, err error) {
	body, err := c.Get(ctx, path, f.Values())
	if err != nil {
		return list, fmt.Errorf("reading proxies: %w", err)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, fmt.Errorf("reading proxies: %w", err)
	}
	return list, nil
}
