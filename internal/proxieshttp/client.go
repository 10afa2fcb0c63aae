// SPDX-License-Identifier: Apache-2.0

package proxieshttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client asks one replica of the discovery server.
type Client struct {
	// HTTP sends every request to [Port] of the replica's pod.
	HTTP *http.Client
}

// origin is how the replica is named to itself.
const origin = "http://localhost"

// maxComplaint is how many bytes are read of an answer that is none.
const maxComplaint = 1 << 10

// errEndless is what is said of a replica whose pages do not go on.
var errEndless = errors.New("reading proxies: the pages repeat themselves")

// List reads all pages. The connection ends with it.
func (c Client) List(ctx context.Context, f Filter) (List, error) {
	defer c.HTTP.CloseIdleConnections()
	all := List{Proxies: []Proxy{}}
	for {
		page, found, err := c.get(ctx, Prefix, f)
		if err == nil && !found {
			err = errors.New("reading proxies: " + Prefix + " is not there")
		}
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
// it. The connection ends with it.
func (c Client) Proxy(ctx context.Context, namespace, pod string, f Filter) (list List, found bool, err error) {
	defer c.HTTP.CloseIdleConnections()
	f.Namespace, f.Pod = "", ""
	return c.get(ctx, Prefix+"/"+url.PathEscape(namespace)+"/"+url.PathEscape(pod), f)
}

// get reads one document; false when the path is not there.
func (c Client) get(ctx context.Context, path string, f Filter) (list List, found bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+path+"?"+f.Values().Encode(), http.NoBody)
	if err != nil {
		return list, false, fmt.Errorf("reading proxies: %w", err)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // the address would name a server that there is not
		}
		return list, false, fmt.Errorf("reading proxies: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	switch response.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
			return List{}, false, fmt.Errorf("reading proxies: %w", err)
		}
		return list, true, nil
	case http.StatusNotFound:
		return list, false, nil
	default:
		complaint, _ := io.ReadAll(io.LimitReader(response.Body, maxComplaint)) // the status says enough
		return list, false, fmt.Errorf("reading proxies: %s: %s", response.Status, strings.TrimSpace(string(complaint)))
	}
}
