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

// The steps of this file find elements by asking the page, each time anew. The selectors of
// chromedp keep a picture of the document, and now and then wait for good for one that was
// replaced.

// answerWithin is how long a browser may take to say that a key or a click has arrived. It
// says nothing if the page went away under it.
const answerWithin = 5 * time.Second

// find is an expression for the first element of a CSS selector, or of an XPath, which
// begins with a slash.
func find(selector string) string {
	quoted, err := json.Marshal(selector)
	if err != nil {
		panic(err) // a string always has its JSON
	}
	if strings.HasPrefix(selector, "/") {
		return fmt.Sprintf(`document.evaluate(%s, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue`, quoted)
	}
	return fmt.Sprintf(`document.querySelector(%s)`, quoted)
}

// Visible waits until an element is there to be seen.
func Visible(selector string) chromedp.Action {
	return Until(find(selector) + `?.getClientRects().length`)
}

// Text reads what an element says, as soon as it can be seen.
func Text(selector string, into *string) chromedp.Action {
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(find(selector)+`.innerText`, into)}
}

// SetValue sets the value of a field, without keys.
func SetValue(selector, value string) chromedp.Action {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{ %s.value = %s; 0 }`, find(selector), quoted), nil)}
}

// Click waits for an element and presses the mouse in its middle.
func Click(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var at struct{ X, Y float64 }
		if err := chromedp.Run(ctx, Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{
			const element = %s;
			element.scrollIntoView({ block: 'center', inline: 'center' });
			const box = element.getClientRects()[0];
			({ X: box.x + box.width / 2, Y: box.y + box.height / 2 })
		}`, find(selector)), &at)); err != nil {
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

// Type waits for a field, puts the cursor into it and presses keys.
func Type(selector, keys string) chromedp.Action {
	return chromedp.Tasks{Visible(selector), chromedp.Evaluate(fmt.Sprintf(`{ %s.focus(); 0 }`, find(selector)), nil), Press(keys)}
}

// Press presses keys wherever the cursor is.
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

// deliver sends an event, and does without the answer of a browser whose page went away
// under it: whether it arrived shows in what comes next.
func deliver(ctx context.Context, event chromedp.Action) error {
	short, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := event.Do(short); err != nil && (ctx.Err() != nil || short.Err() == nil) {
		return err
	}
	return nil
}
