// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// probeTime bounds one question to nginx.
const probeTime = 2 * time.Second

// probe asks on a new connection for the generation that a worker has loaded.
func probe(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var dialer net.Dialer
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://probe/", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("probing nginx: %w", err)
	}
	const longest = 100
	text, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("probing nginx: %w", err)
	}
	return string(text), nil
}

// removeStaleSocket removes a socket that a program left when it was killed: nginx does not start beside it.
func removeStaleSocket(path string) error {
	conn, err := net.DialTimeout("unix", path, probeTime)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("finding sockets of before: another nginx listens to %s", path), conn.Close())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the socket of before: %w", err)
		}
		return nil
	default:
		return fmt.Errorf("finding sockets of before: %w", err)
	}
}
