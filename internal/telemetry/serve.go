// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// shutdownGrace is how long running requests may take once the context ended.
const shutdownGrace = 3 * time.Second

// Serve listens on address and serves handler until ctx ends; then it lets
// running requests finish. An empty address serves nothing and waits for ctx.
func Serve(ctx context.Context, address string, handler http.Handler) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", address, err)
	}
	return ServeListener(ctx, listener, handler)
}

// ServeListener is Serve on a listener that exists; it closes the listener.
func ServeListener(ctx context.Context, listener net.Listener, handler http.Handler) error {
	srv := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second,
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		// The parent context is over; the grace needs one of its own.
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	err := srv.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("shutting down %s: %w", listener.Addr(), err)
	}
	return nil
}
