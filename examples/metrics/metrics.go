// Package metrics counts the events of an auth.Auth for Prometheus or OpenTelemetry. It
// is a separate module, because the library itself needs neither.
//
//	auth.New(ctx, store, auth.WithHooks(metrics.Prometheus(prometheus.DefaultRegisterer)), …)
package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/authmount/auth"
)

// Labels have few values: types of events, sign-in methods and providers are known in
// advance. Users, sessions and addresses are not labels.
const (
	name = "auth_events_total"
	help = "What has happened, by type of event, way of signing in and provider."
)

// Prometheus counts events as auth_events_total{type, method, provider}.
func Prometheus(r prometheus.Registerer) (auth.Hooks, error) {
	events := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type", "method", "provider"})
	if err := r.Register(events); err != nil {
		return auth.Hooks{}, fmt.Errorf("metrics: %w", err)
	}
	return auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) {
		events.WithLabelValues(string(e.Type), e.Method, e.Provider).Inc()
	}}, nil
}

// OpenTelemetry counts events as auth.events, with the attributes auth.event, auth.method
// and auth.provider. The event's context has the span of its request, if there is one.
func OpenTelemetry(m metric.Meter) (auth.Hooks, error) {
	events, err := m.Int64Counter("auth.events", metric.WithDescription(help), metric.WithUnit("{event}"))
	if err != nil {
		return auth.Hooks{}, fmt.Errorf("metrics: %w", err)
	}
	return auth.Hooks{OnEvent: func(ctx context.Context, e auth.Event) {
		of := []attribute.KeyValue{attribute.String("auth.event", string(e.Type))}
		if e.Method != "" {
			of = append(of, attribute.String("auth.method", e.Method))
		}
		if e.Provider != "" {
			of = append(of, attribute.String("auth.provider", e.Provider))
		}
		events.Add(ctx, 1, metric.WithAttributes(of...))
	}}, nil
}
