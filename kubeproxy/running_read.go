package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Doer sends HTTP requests; *http.Client is one. To ask through the API server
// use a client of its URL, such as that of rest.HTTPClientFor.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// maxAnswer bounds an answer, in bytes. A real configz has about 2 KiB; featureGates
// and long CIDR lists may double it.
const maxAnswer = 1 << 20

// ReadRunning asks a kube-proxy for its configuration in force and its mode.
// base is the URL that /configz and /proxyMode are below: "http://" and what
// Config.MetricsHostPort returns, or a pod's proxy URL on the API server.
//
// If only one of the two answers, the result has it and the error is of the
// other. Errors match os.ErrPermission for status 401 and 403, os.ErrNotExist for
// 404, and what client returned. It is safe for concurrent use.
func ReadRunning(ctx context.Context, client Doer, base string) (Running, error) {
	base = strings.TrimSuffix(base, "/")
	r := Running{At: time.Now(), Source: base}
	text, configErr := get(ctx, client, base+"/configz")
	if configErr == nil {
		var c Config
		if c, configErr = ParseConfigz(text); configErr == nil {
			c.At, c.Source.Path = r.At, base+"/configz"
			r.Config = &c
		}
	}
	text, modeErr := get(ctx, client, base+"/proxyMode")
	if modeErr == nil {
		r.Mode, modeErr = ParseProxyMode(text)
	}
	return r, errors.Join(configErr, modeErr)
}

func get(ctx context.Context, client Doer, url string) (_ []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("kubeproxy: get %s: %w", url, err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: kube-proxy listens on a loopback address unless its metricsBindAddress says otherwise: ask on the node", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if err := statusError(resp.StatusCode); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes: this is not kube-proxy", maxAnswer)
	}
	return text, nil
}

func statusError(code int) error {
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("status %d: %w: grant get on pods/proxy, or ask on the node", code, os.ErrPermission)
	case http.StatusNotFound:
		return fmt.Errorf("status %d: %w: is another program on this port?", code, os.ErrNotExist)
	}
	return fmt.Errorf("status %d", code)
}
