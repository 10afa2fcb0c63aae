// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Bounds of connections. Answers may take as long as the API server needs, see patience and maxWait.
const (
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 30 * time.Second
	answerTimeout  = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
)

// Serve answers until the context ends. Requests under way may then take so long as grace says.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving the API: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return errors.Join(fmt.Errorf("ending the API: %w", err), server.Close())
	}
	return nil
}
