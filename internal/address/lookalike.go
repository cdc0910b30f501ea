package address

import (
	"strings"
	"unicode"
)

// latinLookalikes are Latin letters that look like one ASCII character in most fonts:
// letters without a dot or a serif, phonetic letters, small capitals, clicks.
const latinLookalikes = "ıɩɪƖꞁǀǁǂǃɑⱭɡƍᴀʙᴄᴅᴇꜰɢʜᴊᴋʟᴍɴᴏᴑᴘꞯʀꜱᴛᴜᴠᴡʏᴢƽƼʋƲɯƜɣƔƅƄƨƧʒƷȝȜȣȢꝯꝮƿɂʔʕ"

// otherLookalikes are letters of other scripts that look like one ASCII character. Each
// is a normal letter of its language, but a local part with no other letters looks like
// an ASCII one.
const otherLookalikes = "" +
	"аеѕіїјһорсхуүґгԁԛԝѡѵӏьбзчԍ" + "АВЕЅІЇЈКМНОРСТХУҮѴԚԜԌӀҺЬЗБЧГ" + // Cyrillic
	"αικνορυγσςτωηχϳ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧͿ" + // Greek
	"օսոհցզգյաղքւ" + "ՍՕՏԼՈԶԱ" + // Armenian
	"סוןח" + "اهہھە" + "ჿყ" + "ဝ" + "ഠടഗ" + "ଠ" + "ಠ" + "一ー丨ノ丿丶"

// looksASCII reports whether a text, or a Latin letter in it, looks like ASCII.
func looksASCII(s string) bool {
	if strings.ContainsAny(s, latinLookalikes) {
		return true
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.Is(unicode.L, r) && !strings.ContainsRune(otherLookalikes, r)
	})
}
