package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// The steps of this file find elements with an expression on the page, each time again.
// The selectors of chromedp keep a copy of the document, and sometimes wait forever for a
// document that was replaced.

// answerWithin limits the time in which a browser confirms a key or a click. It does not
// answer if the page was replaced.
const answerWithin = 5 * time.Second

// elementExpression returns an expression for the first element of a CSS selector, or of an XPath,
// which starts with a slash.
func elementExpression(selector string) string {
	quoted, err := json.Marshal(selector)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	if strings.HasPrefix(selector, "/") {
		return fmt.Sprintf(`document.evaluate(%s, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue`, quoted)
	}
	return fmt.Sprintf(`document.querySelector(%s)`, quoted)
}

// Visible waits until an element is visible.
func Visible(selector string) chromedp.Action {
	return Until(elementExpression(selector) + `?.getClientRects().length`)
}

// Text reads the text of an element when it is visible.
func Text(selector string, into *string) chromedp.Action {
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(elementExpression(selector)+`.innerText`, into)}
}

// SetValue sets the value of a field without key presses.
func SetValue(selector, value string) chromedp.Action {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{ %s.value = %s; 0 }`, elementExpression(selector), quoted), nil)}
}

// Click waits for an element and clicks its center.
func Click(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var at struct{ X, Y float64 }
		if err := chromedp.Run(ctx, Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{
			const element = %s;
			element.scrollIntoView({ block: 'center', inline: 'center' });
			const box = element.getClientRects()[0];
			({ X: box.x + box.width / 2, Y: box.y + box.height / 2 })
		}`, elementExpression(selector)), &at)); err != nil {
			return fmt.Errorf("%s: %w", selector, err)
		}
		for _, kind := range []input.MouseType{input.MousePressed, input.MouseReleased} {
			if err := deliver(ctx, input.DispatchMouseEvent(kind, at.X, at.Y).WithButton(input.Left).WithClickCount(1)); err != nil {
				return fmt.Errorf("%s: %w", selector, err)
			}
		}
		return nil
	})
}

// Type waits for a field, focuses it and presses keys.
func Type(selector, keys string) chromedp.Action {
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{ %s.focus(); 0 }`, elementExpression(selector)), nil), Press(keys)}
}

// Press presses keys in the focused element.
func Press(keys string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for _, key := range keys {
			if err := deliver(ctx, chromedp.KeyEvent(string(key))); err != nil {
				return err
			}
		}
		return nil
	})
}

// deliver sends an event and ignores a missing answer of a browser whose page was
// replaced: the next steps show whether it arrived.
func deliver(ctx context.Context, event chromedp.Action) error {
	short, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := event.Do(short); err != nil && (ctx.Err() != nil || short.Err() == nil) {
		return err
	}
	return nil
}
