// An OpenID provider with its own login and consent pages. Anybody may log in;
// whoever does has the address <login>@example.com.
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

const [port, redirectURI, clientID, clientSecret] = process.argv.slice(2)
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: clientID, client_secret: clientSecret, redirect_uris: [redirectURI] }],
  pkce: { required: () => true },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({ sub, email: `${sub}@example.com`, email_verified: sub !== 'unverified', name: `${sub} of the peer` }),
  }),
})
// What was asked for, for the test to judge.
provider.on('authorization.success', ctx => {
  const { nonce, code_challenge_method } = ctx.oidc.params
  console.log(JSON.stringify({ nonce: nonce?.length ?? 0, code_challenge_method }))
})
provider.on('server_error', (_, err) => console.error(err))
createServer(provider.callback()).listen(Number(port), '127.0.0.1', () => console.log('listening'))
