// Package metrics counts the events of an auth.Auth for Prometheus or OpenTelemetry. It
// is a separate module, because the library itself needs neither.
//
//	hooks, err := metrics.Prometheus(prometheus.DefaultRegisterer)
//	…
//	a, err := auth.New(ctx, store, auth.WithHooks(hooks), …)
package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/authmount/auth"
)

const (
	name = "auth_events_total"
	help = "Events by type, sign-in method and provider."
)

// Prometheus returns hooks that count events as auth_events_total{type, method, provider}.
// The labels have few values: types of events, sign-in methods and providers are known in
// advance. Users, sessions and addresses are not labels.
func Prometheus(r prometheus.Registerer) (auth.Hooks, error) {
	events := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type", "method", "provider"})
	if err := r.Register(events); err != nil {
		return auth.Hooks{}, fmt.Errorf("metrics: %w", err)
	}
	return auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) {
		events.WithLabelValues(string(e.Type), e.Method, e.Provider).Inc()
	}}, nil
}

// OpenTelemetry returns hooks that count events as auth.events, with the attributes auth.event, auth.method
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
