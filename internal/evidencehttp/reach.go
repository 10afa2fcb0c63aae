// SPDX-License-Identifier: Apache-2.0

package evidencehttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxAnswer bounds an answer in bytes: the names of half a million records.
	maxAnswer = 64 << 20
	// dialWithin and answerWithin bound how long the port may take to connect, and to begin its answer.
	dialWithin, answerWithin = 2 * time.Second, 10 * time.Second
	// idleConnections are kept for the next record.
	idleConnections = 4
)

// NewClient makes a client of ports in the cluster. It uses no proxy and follows no redirect.
func NewClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialWithin}).DialContext,
			ResponseHeaderTimeout: answerWithin, MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Reach makes a Get that asks the port of an executor itself, at host:port.
func Reach(client *http.Client, address string) Get {
	return func(ctx context.Context, path string, query map[string]string) ([]byte, error) {
		values := url.Values{}
		for name, value := range query {
			values.Set(name, value)
		}
		target := &url.URL{Scheme: "http", Host: address, Path: path, RawQuery: values.Encode()}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("asking the executor: %w", err)
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("asking the executor: %w", err)
		}
		defer func() { _ = response.Body.Close() }() // it was read
		switch response.StatusCode {
		case http.StatusOK:
			return readAnswer(response.Body)
		case http.StatusNotFound:
			return nil, apierrors.NewNotFound(schema.GroupResource{}, path)
		}
		return nil, fmt.Errorf("asking the executor: %s", response.Status)
	}
}

func readAnswer(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer of the executor: %w", err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("reading the answer of the executor: it has more than %d bytes", maxAnswer)
	}
	return data, nil
}
